import type { Part } from './part.ts'
import { runSuite } from './suite.ts'

/** A network of its own that has loopback and nothing else. */
const script = 'ip link set lo up && exec "$@"'

/** Whoever is not root already is it in there, or could not switch loopback on. */
const namespace = process.getuid?.() === 0 ? ['unshare', '--net'] : ['unshare', '--net', '--user', '--map-root-user']

export const part: Part = {
  title: 'Without a network',
  how:
    'The whole test suite as `npm test` runs it, the first start of a platform, its setup and its first jobs among it, in a network ' +
    'namespace that has loopback and nothing else.',
  run: (effort) => {
    const suite = {
      files: effort.isShort ? ['test/journey/first-run.test.ts'] : [],
      environment: { PLAT_TEST_LONG: '', NODE_COMPILE_CACHE: '' },
      within: [...namespace, 'sh', '-c', script, 'sh'],
    }
    return runSuite('tests that pass without a network, of all that `npm test` runs', suite, effort)
  },
}
