/**
 * Runs deployment commands one after the other in a network namespace with a copy of the project, because SST listens
 * on a fixed port of all addresses. Commands and results are JSON lines.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { functionNames } from '@platform/core/updates/function-names'
import { localRegion } from '@platform/local/emulators/http/environment'
import { startAws } from './aws.ts'
import { Command, type CommandResult } from './start.ts'

const root = join(import.meta.dirname, '../../..')
const [folder = ''] = process.argv.slice(2)
const project = join(folder, 'project')
const ledger = join(folder, 'ledger.jsonl')
const config = join(folder, 'config')

async function copyProject(): Promise<void> {
  await mkdir(join(project, '.sst'), { recursive: true })
  for (const name of ['sst.config.ts', 'package.json', 'infra', 'scripts', '.sst/provider-lock.json']) {
    await cp(join(root, name), join(project, name), { recursive: true })
  }
  for (const name of ['node_modules', 'packages', '.sst/platform']) {
    await symlink(join(root, name), join(project, name))
  }
  // Bundling the real functions would take most of the time, and nothing runs them.
  for (const name of functionNames) {
    const file = join(project, 'functions', `${name}.ts`)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, 'export const handler = () => null\n')
  }
}

async function installEngine(): Promise<void> {
  const engine = join(config, 'sst/bin/pulumi')
  await mkdir(join(config, 'sst/bin'), { recursive: true })
  const script = `#!/bin/sh\nexec "${process.execPath}" "${join(import.meta.dirname, 'engine.ts')}" "$@"\n`
  await writeFile(engine, script, { mode: 0o755 })
}

async function run(
  { script, args, environment }: Command,
  awsUrl: string,
): Promise<Pick<CommandResult, 'exitCode' | 'output'>> {
  const npmArgs = script === 'sst' ? ['exec', '--', 'sst', ...args] : ['run', '--silent', script, '--', ...args]
  const child = spawn('npm', npmArgs, {
    cwd: project,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      XDG_CONFIG_HOME: config,
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SST_SKIP_DEPENDENCY_CHECK: '1',
      ENGINE_LEDGER: ledger,
      AWS_ENDPOINT_URL: awsUrl,
      AWS_REGION: localRegion,
      AWS_ACCESS_KEY_ID: 'DEPLOYER',
      AWS_SECRET_ACCESS_KEY: 'signatures-are-not-verified',
      AWS_EC2_METADATA_DISABLED: 'true',
      ...environment,
    },
  })
  const [out, errors, [exitCode]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { exitCode, output: `${out}${errors}` }
}

execFileSync('ip', ['link', 'set', 'lo', 'up'])
await Promise.all([copyProject(), installEngine()])
const requests: string[] = []
const awsUrl = await startAws((request) => requests.push(request))
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  requests.length = 0
  await rm(ledger, { force: true })
  const command = Command.parse(JSON.parse(line))
  for (const [name, content] of Object.entries(command.files)) await writeFile(join(project, name), content)
  const commandResult = await run(command, awsUrl)
  for (const name of Object.keys(command.files)) await rm(join(project, name))
  const lines = (await readFile(ledger, 'utf8').catch(() => '')).split('\n').filter(Boolean)
  const operations = lines.map((each) => JSON.parse(each))
  const result: CommandResult = { ...commandResult, requests: [...requests], operations }
  console.log(JSON.stringify(result))
}
await rm(folder, { recursive: true, force: true })
process.exit(0)
