"""What users bring of their own, put through the library's attacks."""
