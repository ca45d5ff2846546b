"""Simulated GPUs: the documentation's gpu.example.com."""
