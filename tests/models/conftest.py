from tests.training.conftest import data, one_thread

__all__ = ["data", "one_thread"]
