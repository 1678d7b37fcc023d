import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ModuleManifest } from '@platform/contract/manifest'
import { environmentNames as names } from '@platform/modules/protocol'

const root = join(import.meta.dirname, '../../..')

/** The reference module in a process of the bench, as anybody may run it. */
export interface Hello extends AsyncDisposable {
  /** Path of its socket. */
  socket: string
}

/** Bundles the reference module and starts it; whoever asks it needs the token. */
export async function startHello(token: string): Promise<Hello> {
  await using starting = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hello-'))
  starting.defer(() => rm(folder, { recursive: true, force: true }))
  const [program, socket] = [join(folder, 'hello.mjs'), join(folder, 'm')]
  await once(spawn(process.execPath, ['scripts/build-hello.ts', program], { cwd: root }), 'exit')
  const child = spawn(process.execPath, [program], {
    env: { [names.token]: token, [names.startsItself]: '1', [names.socket]: socket },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  starting.defer(async () => {
    child.kill()
    await exit
  })
  await listening(child.stdout)
  const started = starting.move()
  return { socket, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** Its log is read on afterwards, so that it never waits to write. */
async function listening(output: NodeJS.ReadableStream): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  output.setEncoding('utf8')
  output.on('data', (text: string) => {
    if (text.includes('Hello')) resolve()
  })
  output.once('end', () => reject(new Error('The reference module ended.')))
  await promise
}

/** What the reference module declares. */
export const helloManifest = async (): Promise<ModuleManifest> =>
  ModuleManifest.parse(JSON.parse(await readFile(join(root, 'packages/hello/module.json'), 'utf8')))
