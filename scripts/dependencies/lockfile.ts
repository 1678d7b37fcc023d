/** A package as `package-lock.json` has it. */
export interface Locked {
  name?: string
  version?: string
  license?: string
  integrity?: string
  /** Leads to a workspace. */
  link?: boolean
  resolved?: string
  dev?: boolean
  optional?: boolean
  devOptional?: boolean
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

/** `package-lock.json`: where a package lies → what it is. */
export type Packages = Readonly<Record<string, Locked>>

/** Where the workspaces lie; the root is ''. */
export const workspacesOf = (packages: Packages): string[] =>
  Object.keys(packages).filter((path) => !path.includes('node_modules/'))

/** The name of what lies at a path. */
export const nameAt = (path: string, { name }: Locked): string => name ?? path.split('node_modules/').at(-1) ?? path

/** The path of what a package gets when it asks for a name: the nearest one upwards, as Node looks for it. */
export function resolveFrom(packages: Packages, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    const found = packages[path]
    if (found !== undefined) return found.link ? found.resolved : path
    if (folder === '') return undefined
  }
}

/** What a workspace asks for by name. */
export interface Direct {
  name: string
  /** As its `package.json` has it. */
  range: string
  workspace: string
  isForDevelopment: boolean
  version: string
  license: string
}

/** Everything that the workspaces ask for, but for each other. */
export const directsOf = (packages: Packages): Direct[] =>
  workspacesOf(packages).flatMap((workspace) => {
    const { dependencies = {}, devDependencies = {} } = packages[workspace] ?? {}
    const asked = [...Object.entries(dependencies), ...Object.entries(devDependencies)]
    return asked.flatMap(([name, range]) => {
      const path = resolveFrom(packages, workspace, name)
      if (path === undefined) throw new Error(`${workspace} asks for ${name}, which is not in the lockfile.`)
      const { version = '', license = '' } = packages[path] ?? {}
      const isForDevelopment = dependencies[name] === undefined
      return path.includes('node_modules/') ? [{ name, range, workspace, isForDevelopment, version, license }] : []
    })
  })
