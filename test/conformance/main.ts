import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findSimulator, folderOf } from '../simulator/state.ts'

const help = `npm run conformance [-- --base-url URL] [--token TOKEN] [--only NAME,NAME]

Runs black-box tests over HTTP against a running platform. Exits with 1 when the platform breaks a promise.

  --base-url URL  where the platform runs, such as http://127.0.0.1:8080; without it the simulator that
                  npm run simulate has started
  --token TOKEN   the initial admin token of a platform that is not set up; better in PLAT_INITIAL_ADMIN_TOKEN,
                  where other users of the machine cannot see it
  --only NAMES    only these test files, such as clusters,jobs

A platform that is not set up is set up first. On this machine the token is retrieved with the command that the platform
returns; run this in the project's folder, in the environment that the platform was started in (PLAT_DATA_DIR).

  PLAT_CONFORMANCE_USERNAME  the administrator; default admin
  PLAT_CONFORMANCE_PASSWORD  its password; on this machine it defaults to the one in docs/operations.md
  PLAT_OUTBOUND_ALLOW        as the platform has it: webhook deliveries are tested where it names a port of this machine

Each run uses unique names and removes what it created. The audit trail and organisations without users remain;
the next run uses these organisations again.
`

function fail(message: string): never {
  console.error(`${message}\nSee npm run conformance -- --help`)
  process.exit(2)
}

function simulatorEnvironment(): NodeJS.ProcessEnv {
  const { ready } = findSimulator(folderOf(process.env)) ?? fail('Start the simulator, or use --base-url URL.')
  if (ready === undefined) fail('The simulator is still starting. Try again when it is ready.')
  const PLAT_CONFORMANCE_TOKEN_COMMAND = 'npm run -s simulate -- --token'
  return { PLAT_CONFORMANCE_URL: ready.url, PLAT_OUTBOUND_ALLOW: ready.outboundAllow, PLAT_CONFORMANCE_TOKEN_COMMAND }
}

const text = { type: 'string' } as const
const options = { 'base-url': text, token: text, only: text, help: { type: 'boolean' } } as const
const { 'base-url': url, token, only, help: isHelp } = parseArgs({ options }).values
if (isHelp) process.exit(console.log(help) ?? 0)
if (url !== undefined && !/^https?:/.test(url)) fail(`--base-url: "${url}" is not an http or https URL.`)
const files = (only?.split(',') ?? []).map((name) => `test/conformance/${name}.test.ts`)
for (const file of files) if (!existsSync(file)) fail(`--only: ${file} does not exist.`)
const { status } = spawnSync(
  join(import.meta.dirname, '../../node_modules/.bin/vitest'),
  ['run', '--project', 'conformance', '--reporter', 'default', '--maxWorkers', '2', ...files],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      PLAT_TEST_LONG: '1',
      ...(url === undefined ? simulatorEnvironment() : { PLAT_CONFORMANCE_URL: url }),
      ...(token !== undefined && { PLAT_INITIAL_ADMIN_TOKEN: token }),
    },
  },
)
process.exitCode = status ?? 1
