import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '../../support/wait-for.ts'
import { Plat } from '../../support/plat.ts'
import { PlatformProcess } from '../../support/platform.ts'
import { runRelayCommand } from '../../support/relay-command.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

export const password = 'correct horse battery'

export interface Environment extends AsyncDisposable {
  platform: PlatformProcess
  plat: Plat
  folder: string
  /** Calls the API as the user of `plat`, without starting a process. */
  call: (method: string, path: string, body?: object) => Promise<any>
}

export async function startEnvironment(...clusters: string[]): Promise<Environment> {
  await using starting = new AsyncDisposableStack()
  const settings = { PLAT_LIMIT_BATCH_PER_MINUTE: '1000', PLAT_UPDATE_BAKE_SECONDS: '1' }
  const platform = starting.use(await PlatformProcess.start(settings))
  const { path: folder } = starting.use(await temporaryFolder())
  await platform.setUp()
  const plat = new Plat(folder, { PLAT_SERVER: platform.url })
  await logIn(plat)
  for (const name of clusters) {
    const relayCommand = await plat.prints(['cluster', 'register', name])
    await mkdir(join(folder, name))
    starting.use(runRelayCommand(relayCommand, join(folder, name)))
  }
  const call = async (method: string, path: string, body?: object): Promise<any> => {
    const { accessToken } = JSON.parse(await readFile(join(folder, 'config/plat/contexts/default.json'), 'utf8'))
    const headers = { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' }
    const request = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const response = await fetch(`${platform.url}/api/v1${path}`, request)
    if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${await response.text()}`)
    return response.status === 204 ? undefined : response.json()
  }
  await waitFor('all clusters to be Healthy', async () => {
    const { items } = await call('GET', '/clusters?status=Healthy')
    return items.length === clusters.length
  })
  const resources = starting.move()
  return { platform, plat, folder, call, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

export const logIn = (plat: Plat): Promise<string> =>
  plat.prints(['login', '--username', 'ada', '--password-stdin'], `${password}\n`)
