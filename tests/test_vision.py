"""torchvision comes in through one door, whatever it was built against."""

import subprocess
import sys

CODE = """
import sys
try:
    import torchvision  # may fail and leave half a module
except RuntimeError:
    pass
from bench.vision import torchvision
module = torchvision()
assert torchvision() is module is sys.modules["torchvision"]
assert module.datasets.CIFAR10 and module.transforms.RandomCrop
"""


def test_the_door_after_a_failed_import() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
