import { afterAll, vi } from 'vitest'

/**
 * One process runs several files, for a new one takes as long as many a file: each finds the project's modules as if nobody had imported
 * them yet, and leaves the clock, the environment and what it has replaced as they were. Libraries stay as they are.
 */

vi.resetModules()

const environment = { ...process.env }

afterAll(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
})
