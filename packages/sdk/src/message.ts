/** Returns the message of a thrown value of any type, truncated to 1,000 characters. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : asText(error)
  return text.slice(0, 1000)
}

function asText(value: unknown): string {
  try {
    return String(value)
  } catch {
    return 'an error without a message'
  }
}
