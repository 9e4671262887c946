"""Objectives whose constants are known exactly."""
