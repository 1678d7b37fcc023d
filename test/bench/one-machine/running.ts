import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonRequest, type TestRequest } from '../../support/request.ts'
import { administrator } from '../support/tenant.ts'
import type { Announcement } from './platform.ts'

/** A platform in a process of its own, on an empty data folder, set up. */
export interface RunningPlatform extends AsyncDisposable {
  url: string
  /** Of its administrator. */
  accessToken: string
  /** What an SDK needs to reach its stand-ins. */
  environment: Record<string, string>
}

const program = new URL('platform.ts', import.meta.url)

/** Starts a platform with further settings, and other functions than its own if a folder of them is named. */
export async function startRunning(settings: Record<string, string>, functionsDir?: string): Promise<RunningPlatform> {
  const dataDir = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  const child = fork(program, functionsDir === undefined ? [] : [functionsDir], {
    env: { PATH: process.env['PATH'], PLAT_PORT: '0', PLAT_DATA_DIR: dataDir, ...settings },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const exit = once(child, 'exit')
  const stop = async () => {
    if (child.connected) child.disconnect()
    await exit
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    const [announcement]: Announcement[] = await once(child, 'message')
    if (announcement === undefined) throw new Error('The platform said nothing.')
    const { url, initialAdminToken, environment } = announcement
    const { accessToken } = await ask(url, jsonRequest('/api/v1/setup/complete', setup(initialAdminToken)))
    return { url, accessToken, environment, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const setup = (initialAdminToken: string) => ({
  platformName: 'Bench',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: administrator.username,
  adminEmail: 'admin@example.com',
  adminPassword: administrator.password,
  initialAdminToken,
})

/** The body of the answer to a request over HTTP; rejects unless it is a success. */
export async function ask(url: string, { target, method = 'GET', headers = {}, body }: TestRequest): Promise<any> {
  const content = body === undefined ? {} : { body: String(body) }
  const response = await fetch(`${url}${target}`, { method, headers, ...content })
  const text = await response.text()
  if (!response.ok) throw new Error(`${target} answered ${response.status}: ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}
