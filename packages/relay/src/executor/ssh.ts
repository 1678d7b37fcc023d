import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import type { SshNode } from '../nodes.ts'
import { reportFailedStart, pipeOutput } from './child.ts'
import { type Executor, probeLimits, type RunningScript, type Task } from './executor.ts'
import { quote, remoteCommand } from './remote-script.ts'

const run = promisify(execFile)

const checkTimeoutMs = 15_000
// This is longer than the five seconds after which the remote command kills the process group.
const killAfterMs = 8000

/** Runs scripts on another machine through the system's `ssh`, which must connect without a prompt. */
export function sshExecutor(node: SshNode): Executor {
  return {
    start: (task) => {
      try {
        return start(node, task)
      } catch (error) {
        return reportFailedStart(error, task)
      }
    },
    isOnline: () => isOnline(node),
    probe: (command) => probe(node, command),
  }
}

function start(node: SshNode, task: Task): RunningScript {
  const child = spawn('ssh', sshArguments(node, remoteCommand(task, node.workDir)), {
    env: clientEnvironment(),
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // If the connection breaks while the script is sent, the exit code shows it.
  child.stdin.on('error', () => {})
  child.once('exit', () => child.stdin.destroy())
  const runningScript = pipeOutput(child, child, task, { request: () => child.stdin.end(), killAfterMs })
  // `pipeOutput` has recorded the group leader, so the script may start now.
  child.stdin.write(task.script)
  return runningScript
}

async function isOnline(node: SshNode): Promise<boolean> {
  try {
    const child = spawn('ssh', ['-n', ...sshArguments(node, 'true')], {
      env: clientEnvironment(),
      stdio: 'ignore',
      timeout: checkTimeoutMs,
      killSignal: 'SIGKILL',
    })
    const [code] = await once(child, 'exit')
    return code === 0
  } catch {
    return false
  }
}

async function probe(node: SshNode, command: string): Promise<string> {
  try {
    const args = ['-n', ...sshArguments(node, `exec sh -c ${quote(command)}`)]
    return (await run('ssh', args, { ...probeLimits, env: clientEnvironment() })).stdout
  } catch {
    return ''
  }
}

// Returns the environment of the relay without `PLAT_` variables, which include the enrollment token.
function clientEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PLAT_')))
}

function sshArguments({ host, user, port, identityFile, knownHostsFile }: SshNode, command: string): string[] {
  const settings = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    'ConnectTimeout=10',
    'ServerAliveInterval=15',
    'ServerAliveCountMax=4',
    'ClearAllForwardings=yes',
    'ControlMaster=no',
    'LogLevel=ERROR',
    ...(identityFile ? ['IdentitiesOnly=yes'] : []),
    ...(knownHostsFile ? [`UserKnownHostsFile="${knownHostsFile}"`] : []),
  ]
  return [
    '-T',
    ...settings.flatMap((setting) => ['-o', setting]),
    ...(port ? ['-p', String(port)] : []),
    ...(user ? ['-l', user] : []),
    ...(identityFile ? ['-i', identityFile] : []),
    '--',
    host,
    command,
  ]
}
