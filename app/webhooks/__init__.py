"""AdmissionReview in, JSON patch or denial out."""
