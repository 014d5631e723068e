"""What a test knows to be there, told to the type checker and asserted."""

from typing import TypeVar

T = TypeVar("T")


def there(value: T | None) -> T:
    """The value, which must not be None."""
    assert value is not None
    return value
