/** Keeps what this process writes to its standard output, until it is released: the lines. */
export function holdOutput(): { release: () => string[] } {
  const written: string[] = []
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = (chunk: string | Uint8Array): boolean => {
    written.push(String(chunk))
    return true
  }
  const release = () => {
    process.stdout.write = write
    return written.join('').split('\n').filter(Boolean)
  }
  return { release }
}
