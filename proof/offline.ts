import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../test/support/temporary-folder.ts'
import { type Effort, type Figure, none, type Part } from './part.ts'
import { runSuite } from './suite.ts'

/** A network of its own that has loopback and nothing else; in the end the kernel's count of what found no way out. */
const script =
  'ip link set lo up && count=$1 && shift && "$@"; code=$?; cat /proc/net/snmp /proc/net/snmp6 >"$count"; exit $code'

/** Whoever is not root already is it in there, or could not switch loopback on. */
const namespace = process.getuid?.() === 0 ? ['unshare', '--net'] : ['unshare', '--net', '--user', '--map-root-user']

async function prove(effort: Effort): Promise<Figure[]> {
  await using folder = await temporaryFolder()
  const count = join(folder.path, 'count')
  const within = [...namespace, 'sh', '-c', script, 'sh', count]
  const environment = { PLAT_TEST_LONG: '', NODE_COMPILE_CACHE: '' }
  const files = effort.isShort ? ['test/journey/first-run.test.ts'] : []
  const claim = 'tests that pass without a network, of all that `npm test` runs'
  const figures = await runSuite(claim, { files, environment, within }, effort)
  return [
    ...figures,
    none('connections and packets that were meant for elsewhere', refusedIn(await readFile(count, 'utf8'))),
  ]
}

/** What the kernel counts as sent where no route leads, by IPv4 and IPv6. */
function refusedIn(text: string): number {
  const [names = [], counts = []] = text
    .split('\n')
    .filter((line) => line.startsWith('Ip: '))
    .map((line) => line.split(' '))
  return Number(counts[names.indexOf('OutNoRoutes')]) + Number(/^Ip6OutNoRoutes\s+(\d+)$/m.exec(text)?.[1])
}

export const part: Part = {
  title: 'Without a network',
  how:
    'The whole test suite as `npm test` runs it, the first start of a platform, its setup and its first jobs among it, in a network ' +
    'namespace that has loopback and nothing else.',
  run: prove,
}
