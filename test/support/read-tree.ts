import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Returns all entries below a folder: files with content, links with target, folders with a slash. Does not follow
 * links.
 */
export async function readTree(root: string, below = ''): Promise<Record<string, string>> {
  const tree: Record<string, string> = {}
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const name = join(below, entry.name)
    if (entry.isSymbolicLink()) tree[name] = `-> ${await readlink(join(root, name))}`
    else if (entry.isDirectory()) Object.assign(tree, { [`${name}/`]: '' }, await readTree(root, name))
    else tree[name] = await readFile(join(root, name), 'utf8')
  }
  return tree
}
