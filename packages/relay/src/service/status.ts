import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { exitCodes, FatalError } from '../exit-codes.ts'
import { loadIdentity } from '../identity.ts'
import { messageOf } from '../log.ts'
import { ModeFile } from '../mode.ts'
import type { Options } from '../options.ts'
import { pathsIn, serviceName } from './unit.ts'

/** Prints the state of the service. Returns an exit code that shows whether the relay is running. */
export function printStatus({ root }: Pick<Options, 'root'>): number {
  const paths = pathsIn(root)
  const isInstalled = existsSync(paths.unit)
  const mode = new ModeFile(paths.state).read()
  const channel = mode.isOpen ? 'open' : 'closed'
  const relayState = mode.isRunning ? `running, control channel ${channel}` : 'not running'
  const lines = [
    ['Service', isInstalled ? `${stateOf('is-enabled', root)}, ${stateOf('is-active', root)}` : 'not installed'],
    // With `--root`, the program belongs to the image of another system, so it must not run here.
    ['Program', isInstalled ? (root === '/' ? versionOf(paths.program) : 'installed') : 'none'],
    ['Identity', identityIn(paths.state)],
    ['Relay', relayState],
  ]
  process.stdout.write(lines.map(([name, text]) => `${name}: ${text}\n`).join(''))
  if (mode.isRunning) return exitCodes.stopped
  return isInstalled ? exitCodes.serviceStopped : exitCodes.serviceMissing
}

function stateOf(verb: string, root: string): string {
  const args = root === '/' ? [verb, serviceName] : ['--root', root, verb, serviceName]
  try {
    return execFileSync('systemctl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch (error) {
    // `systemctl` prints a state such as `disabled` or `inactive`, and exits with a code other than 0.
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout).trim() : ''
    return output || 'unknown'
  }
}

function versionOf(program: string): string {
  try {
    return execFileSync(process.execPath, [program, '--version'], { encoding: 'utf8' }).trim()
  } catch (error) {
    return `damaged (${messageOf(error).split('\n')[0]}); repeat install`
  }
}

function identityIn(stateFolder: string): string {
  try {
    const identity = loadIdentity(stateFolder)
    return identity ? `${identity.relayId} of ${identity.clusterId} at ${identity.server}` : 'not enrolled'
  } catch (error) {
    return error instanceof FatalError ? error.message : 'not readable; use sudo'
  }
}
