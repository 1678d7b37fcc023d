import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Authentication configuration. `{folder}` is replaced with the path of the folder that contains `files`. */
export interface RegistryGuard {
  auth: object
  files: Readonly<Record<string, string>>
}

/** User `ada` with the password `correct horse battery`. */
export const passwordGuard: RegistryGuard = {
  auth: { htpasswd: { realm: 'tests', path: '{folder}/htpasswd' } },
  files: { htpasswd: 'ada:$2y$05$abcdefghijklmnopqrstuOq6zzOVDoF27Ay8usLAto.lXAItC88eK\n' },
}

export async function startDockerRegistry(guard?: RegistryGuard): Promise<{ host: string } & AsyncDisposable> {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await temporaryFolder()).path
  for (const [name, text] of Object.entries(guard?.files ?? {})) await writeFile(join(folder, name), text)
  const configuration = {
    version: '0.1',
    log: { level: 'info' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') }, delete: { enabled: true } },
    http: { addr: '127.0.0.1:0' },
    ...(guard && { auth: guard.auth }),
  }
  const path = join(folder, 'config.yml')
  // YAML is a superset of JSON.
  await writeFile(path, JSON.stringify(configuration).replaceAll('{folder}', folder))
  const env = { PATH: process.env['PATH'] }
  const program = starting.use(new Program('docker-registry', ['serve', path], { cwd: folder, env }))
  const [, host = ''] = await program.writes(/listening on (127\.0\.0\.1:\d+)/)
  const started = starting.move()
  return { host, [Symbol.asyncDispose]: () => started.disposeAsync() }
}
