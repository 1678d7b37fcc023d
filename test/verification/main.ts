/** `npm run verify`: runs the named parts, or `defaultParts`, each with its own vitest process. */
import { spawnSync } from 'node:child_process'
import { exitWithUsage, parseCommandLine } from '@platform/local/command-line'
import { root } from '../../scripts/source.ts'
import { defaultParts, filesOf, partNames, suites } from './parts.ts'

const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run']

const userNamespace = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
const withoutNetwork = ['unshare', '--net', ...userNamespace, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']

function commandOf(name: string, isShort: boolean): readonly string[] {
  if (name === 'offline') return [...withoutNetwork, ...vitest, ...(isShort ? ['test/journey/first-run'] : [])]
  const files = filesOf(name)
  // `fuzz` has two files, which run in parallel. The other parts have one.
  if (files.length > 0) return [...vitest, '--project', 'verification', ...files, `--maxWorkers=${files.length}`]
  return [...vitest, '--maxWorkers=2', ...(suites[name] ?? [])]
}

function run(name: string, isShort: boolean, seed: string): boolean {
  console.log(`\n== ${name}${isShort ? ', short' : ''}, seed ${seed}`)
  const [program = '', ...args] = commandOf(name, isShort)
  const isPart = filesOf(name).length > 0
  const env = {
    ...process.env,
    ...(isPart && { PLAT_VERIFY: isShort ? 'short' : 'full', PLAT_VERIFY_SEED: seed }),
    PLAT_TEST_LONG: isShort || name === 'offline' ? '' : '1',
  }
  return spawnSync(program, args, { cwd: root, env, stdio: 'inherit' }).status === 0
}

const usage = `npm run verify -- [--short] [--seed NUMBER] [NAME…]

Without names all parts run: four hours or more.

Parts: ${partNames.join(', ')}`

const options = { short: { type: 'boolean' }, seed: { type: 'string' } } as const
const { values, positionals } = parseCommandLine(usage, { allowPositionals: true, options })
const { short = false, seed = String(Math.floor(Math.random() * 1_000_000)) } = values
const unknownParts = positionals.filter((name) => !partNames.includes(name))
if (unknownParts.length > 0) exitWithUsage(`Unknown part: ${unknownParts.join(', ')}`, usage)
if (positionals.length === 0) console.log(usage)
const selectedParts = positionals.length > 0 ? positionals : defaultParts
const failedParts = selectedParts.filter((name) => !run(name, short, seed))
if (failedParts.length > 0) console.log(`\nFailed: ${failedParts.join(', ')}`)
process.exitCode = Math.min(failedParts.length, 1)
