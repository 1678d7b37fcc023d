import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Plat } from '../../support/plat.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** An author at work: a command line in a folder of its own, and a new module there. */
export interface Author extends AsyncDisposable {
  /** Is in the folder that the module's is in. */
  plat: Plat
  folder: string
  /** The folder of the module `greeting`. */
  module: string
  /** Replaces all of a text in a file of the module, which has to be there. */
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
