/** `npm run verify`: runs the named parts, or all, each in its own process. */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { root } from '../../scripts/source.ts'
import { allNames, fileParts, namesByDefault, suffix, suites } from './names.ts'
import { partNames } from './parts.ts'

/** A network namespace that has only loopback. */
const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
const withoutNetwork = ['unshare', '--net', ...user, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']

const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run']

function commandOf(name: string, isShort: boolean, seed: string): readonly string[] {
  if (fileParts.includes(name)) return [...vitest, '--project', 'verification', `test/verification/${name}${suffix}`]
  if (partNames.includes(name)) {
    return [process.execPath, 'test/verification/run-part.ts', name, isShort ? 'short' : 'full', seed]
  }
  if (name === 'offline') return [...withoutNetwork, ...vitest, ...(isShort ? ['test/journey/first-run'] : [])]
  return [...vitest, '--maxWorkers=2', ...(suites[name] ?? [])]
}

function run(name: string, isShort: boolean, seed: string): boolean {
  const [program = '', ...args] = commandOf(name, isShort, seed)
  const own = fileParts.includes(name) ? { PLAT_VERIFY: isShort ? 'short' : 'full', PLAT_VERIFY_SEED: seed } : {}
  const env = { ...process.env, ...own, PLAT_TEST_LONG: isShort || name === 'offline' ? '' : '1' }
  console.log(`\n== ${name}${isShort ? ', short' : ''}, seed ${seed}`)
  return spawnSync(program, args, { cwd: root, env, stdio: 'inherit' }).status === 0
}

const options = { short: { type: 'boolean' }, seed: { type: 'string' }, help: { type: 'boolean' } } as const
const { values, positionals } = parseArgs({ allowPositionals: true, options })
const { short = false, seed = String(Math.floor(Math.random() * 1_000_000)), help = false } = values
const unknown = positionals.filter((name) => !allNames.includes(name))
if (unknown.length > 0) console.error(`Unknown part: ${unknown.join(', ')}`)
if (help || positionals.length === 0 || unknown.length > 0) {
  console.log('npm run verify -- [--short] [--seed NUMBER] [NAME…]\nWithout names all parts run: four hours or more.\n')
  console.log(`Parts: ${allNames.join(', ')}`)
}
const chosen = help || unknown.length > 0 ? [] : positionals.length > 0 ? positionals : namesByDefault
const failed = chosen.filter((name) => !run(name, short, seed))
if (failed.length > 0) console.log(`\nFailed: ${failed.join(', ')}`)
process.exitCode = unknown.length > 0 ? 2 : Math.min(failed.length, 1)
