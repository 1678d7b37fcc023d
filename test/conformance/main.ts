import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseCommandLine } from '@platform/local/command-line'
import { findSimulator, folderOf } from '../simulator/state.ts'

const usage = `npm run conformance [-- --base-url URL] [--token TOKEN] [--only NAME,NAME]

Runs black-box tests over HTTP against a running platform. Exits with 1 if a test fails.

  --base-url URL  address of the platform, such as http://127.0.0.1:8080; default: the simulator that
                  npm run simulate has started
  --token TOKEN   initial admin token of a platform that is not set up; PLAT_INITIAL_ADMIN_TOKEN hides it from
                  other users of the machine
  --only NAMES    run only these test files, such as clusters,jobs

A platform that is not set up is set up first. For a platform on this machine, the command that the platform returns
retrieves the token: use the project's folder and the environment of the platform (PLAT_DATA_DIR).

  PLAT_CONFORMANCE_USERNAME  administrator; default: admin
  PLAT_CONFORMANCE_PASSWORD  password; default on this machine: the one in docs/operations.md
  PLAT_TEST_LONG             0: sends only a sample of the malformed requests
  PLAT_WEBHOOK_ALLOW         the platform's value: webhook deliveries are tested if it names a port of this machine

Each run uses unique names and removes the resources that it created. The audit trail and the test organisations with
their administrators remain.
`

function fail(message: string): never {
  console.error(`${message}\nSee npm run conformance -- --help`)
  process.exit(2)
}

function simulatorEnvironment(): NodeJS.ProcessEnv {
  const { ready } = findSimulator(folderOf(process.env)) ?? fail('Start the simulator, or use --base-url URL.')
  if (ready === undefined) fail('The simulator is still starting. Try again when it is ready.')
  const PLAT_CONFORMANCE_TOKEN_COMMAND = 'npm run -s simulate -- --token'
  return { PLAT_CONFORMANCE_URL: ready.url, PLAT_WEBHOOK_ALLOW: ready.webhookAllow, PLAT_CONFORMANCE_TOKEN_COMMAND }
}

const text = { type: 'string' } as const
const options = { 'base-url': text, token: text, only: text } as const
const { 'base-url': url, token, only } = parseCommandLine(usage, { options }).values
if (url !== undefined && !/^https?:/.test(url)) fail(`--base-url: "${url}" is not an http or https URL.`)
const files = (only?.split(',') ?? []).map((name) => `test/conformance/${name}.test.ts`)
for (const file of files) if (!existsSync(file)) fail(`--only: ${file} does not exist.`)
const { status } = spawnSync(
  join(import.meta.dirname, '../../node_modules/.bin/vitest'),
  ['run', '--project', 'conformance', '--reporter', 'default', '--maxWorkers', '2', ...files],
  {
    stdio: 'inherit',
    env: {
      PLAT_TEST_LONG: '1',
      ...process.env,
      ...(url === undefined ? simulatorEnvironment() : { PLAT_CONFORMANCE_URL: url }),
      ...(token !== undefined && { PLAT_INITIAL_ADMIN_TOKEN: token }),
    },
  },
)
process.exitCode = status ?? 1
