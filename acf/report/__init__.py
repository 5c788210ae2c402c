"""Pictures of what was collected and learned."""
