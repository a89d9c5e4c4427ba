"""The loops of the leader: observe, decide, sync; each moves rows and cluster toward each other."""
