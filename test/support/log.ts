import { vi } from 'vitest'

export async function captureLog(work: () => Promise<unknown>): Promise<Record<string, any>[]> {
  const lines: string[] = []
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0)
  try {
    await work()
  } finally {
    write.mockRestore()
  }
  return lines
    .join('')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
