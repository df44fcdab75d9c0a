"""Speed side by side with a reference, and the pictures of the documents."""
