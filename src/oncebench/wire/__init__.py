"""Deliveries over HTTP on this machine: a publisher with an outbox, a warehouse, a proxy between them."""
