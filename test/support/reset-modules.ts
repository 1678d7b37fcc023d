import { afterAll, vi } from 'vitest'

/**
 * Test files share a process, because processes start slowly. Each file imports its modules again. Timers, mocks,
 * globals and the environment are restored after each file.
 */

vi.resetModules()

// The output of the code under test belongs to its test: vitest prints it with a failure only.
process.stdout.write = (text: string | Uint8Array) => {
  console.log(String(text).trimEnd())
  return true
}
process.stderr.write = (text: string | Uint8Array) => {
  console.error(String(text).trimEnd())
  return true
}

const environment = { ...process.env }

afterAll(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
})
