/** What an error says, in at most 1,000 characters; anything can be thrown. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : asText(error)
  return text.slice(0, 1000)
}

function asText(value: unknown): string {
  try {
    return String(value)
  } catch {
    return 'something that has no text'
  }
}
