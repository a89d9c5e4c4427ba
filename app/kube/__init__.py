"""The client side of one cluster; nothing else speaks HTTP to an apiserver."""
