/** The entries of a comma-separated setting, without spaces and empty entries. */
export const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
