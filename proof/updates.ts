import type { Part } from './part.ts'
import { runSuite, workers } from './suite.ts'

/** As vitest filters them. */
export const files: readonly string[] = [
  'test/worker/updates/',
  'test/journey/update',
  'test/local/releases/',
  'test/rehearsal/update',
  'test/core/updates/',
]

export const part: Part = {
  title: 'An update that is killed at each of its steps',
  how:
    'Real releases take the place of each other, on one machine and over Lambda aliases; the platform is killed at each step, there ' +
    'and back, and new versions fail in every way: in the end it is exactly the old version or the new one, and no request has failed.',
  run: (effort) => runSuite('tests of updates that pass', { files, workers }, effort),
}
