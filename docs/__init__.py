"""The documents, the scripts that write parts of them, and the site that is made of them."""
