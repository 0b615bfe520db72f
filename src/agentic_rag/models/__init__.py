"""What each model setting resolves to: embedder, chat model, and the embedded model's file."""
