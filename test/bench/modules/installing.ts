import { setTimeout as delay } from 'node:timers/promises'
import { jsonRequest } from '../../support/request.ts'
import { ask, type RunningPlatform } from '../one-machine/running.ts'
import { bearer, getting } from '../support/tenant.ts'

const path = '/api/v1/modules/hello'
const limitMs = 60_000
const pauseMs = 10

/** Installs the reference module; answers how many ms after the request it is Running. */
export async function install({ url, accessToken }: RunningPlatform): Promise<number> {
  const startedAtMs = performance.now()
  await ask(url, jsonRequest(`${path}/install`, {}, bearer(accessToken)))
  await settled(async () => (await ask(url, getting(path, accessToken))).state === 'Running')
  return performance.now() - startedAtMs
}

/** Uninstalls it, and waits until nothing of it is installed. */
export async function uninstall({ url, accessToken }: RunningPlatform): Promise<void> {
  await ask(url, { ...getting(path, accessToken), method: 'DELETE' })
  await settled(async () => (await ask(url, getting('/api/v1/modules', accessToken))).items.length === 0)
}

async function settled(isSo: () => Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + limitMs
  while (!(await isSo())) {
    if (performance.now() > endsAtMs) throw new Error('The reference module takes too long.')
    await delay(pauseMs)
  }
}
