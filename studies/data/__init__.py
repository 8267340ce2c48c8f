"""`halftruth data`: files are looked at, and split over nodes."""
