import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { processesOf } from '../../support/leftovers.ts'
import { ask, type RunningPlatform } from '../one-machine/running.ts'
import { range } from '../support/statistics.ts'
import { getting } from '../support/tenant.ts'

/** Memory that an instance of the reference module occupies, in MB of resident set. */
export interface Memory {
  moduleMegabytes: number
  /** The runc that waits beside a container; 0 without one. */
  runcMegabytes: number
}

const requests = 200

/** What the one instance occupies after some requests. */
export async function memoryOf({ url, accessToken }: RunningPlatform): Promise<Memory> {
  const { organisationId } = await ask(url, getting('/api/v1/auth/me', accessToken))
  for (const _ of range(requests)) await ask(url, getting('/api/hello', accessToken))
  const [instance] = await processesOf(organisationId, 'hello')
  if (instance === undefined) throw new Error('No process of the reference module runs.')
  const status = await statusOf(instance.processId)
  const parent = await statusOf(Number(status['PPid']))
  const isContained = parent['Name']?.startsWith('runc') === true
  return { moduleMegabytes: megabytesOf(status), runcMegabytes: isContained ? megabytesOf(parent) : 0 }
}

/** What a process of Node occupies that has nothing to do. */
export async function emptyMegabytes(): Promise<number> {
  const script = 'setInterval(() => {}, 60_000); process.stdout.write("ready")'
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  await once(child.stdout, 'data')
  const megabytes = megabytesOf(await statusOf(child.pid ?? 0))
  child.kill()
  await exit
  return megabytes
}

/** What Linux tells of a process: `VmRSS` is `<number> kB`. */
async function statusOf(processId: number): Promise<Record<string, string>> {
  const lines = (await readFile(`/proc/${processId}/status`, 'utf8')).trim().split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/:\s*/, 2)))
}

const megabytesOf = ({ VmRSS = '' }: Record<string, string>): number => Number.parseInt(VmRSS, 10) / 1024
