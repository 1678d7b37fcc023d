import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Plat } from '../../support/plat.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

export interface Author extends AsyncDisposable {
  plat: Plat
  folder: string
  module: string
  change: (file: string, before: string | RegExp, after: string) => Promise<void>
}

export async function startAuthor(environment: Record<string, string> = {}, image?: string): Promise<Author> {
  await using starting = new AsyncDisposableStack()
  const { path: folder } = starting.use(await temporaryFolder())
  const plat = new Plat(folder, { PLAT_DATA_DIR: join(folder, 'data'), ...environment }).in(folder)
  await plat.prints(['module', 'new', 'greeting', ...(image === undefined ? [] : ['--image', image])])
  const module = join(folder, 'greeting')
  const started = starting.move()
  return {
    plat,
    folder,
    module,
    change: (file, before, after) => change(join(module, file), before, after),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

async function change(path: string, before: string | RegExp, after: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  const changed = text.replaceAll(typeof before === 'string' ? before : new RegExp(before, 'g'), () => after)
  if (changed === text) throw new Error(`${path} does not hold ${String(before)}.`)
  await writeFile(path, changed)
}
