import { type Direct, directsOf, type Packages } from './lockfile.ts'

const preface = `# Dependencies

Written by \`npm run sbom\`; do not edit. Every package that a workspace asks for by name, in the one version that it is pinned to, and why it is here.
All others, which these bring, are in [the bill of materials](sbom.cdx.json) (CycloneDX), with their licences and hashes. \`npm run check\` fails where
a package has no reason, no pinned version, or a licence that is not on the list (\`scripts/dependencies/problems.ts\`).

Of what runs on AWS only what a function's bundle holds is there: [the functions](functions.md). What to do about a flaw that becomes known: [CONTRIBUTING](../CONTRIBUTING.md#dependencies).`

function rowOf([first, ...more]: readonly Direct[], reasons: Readonly<Record<string, string>>): string[] {
  if (first === undefined) return []
  const { name, version, license } = first
  const users = [first, ...more].map(({ workspace }) => workspace.replace('packages/', '') || 'root')
  return [`| ${[`\`${name}\``, version, license, reasons[name], users.join(', ')].join(' | ')} |`]
}

function tableOf(directs: readonly Direct[], reasons: Readonly<Record<string, string>>): string {
  const byPackage = Map.groupBy(directs, ({ name, version }) => `${name} ${version}`)
  const rows = [...byPackage].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, uses]) => rowOf(uses, reasons))
  return [
    '<!-- oxfmt-ignore -->',
    '| package | version | licence | why | used by |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}

/** `docs/dependencies.md`. */
export function pageOf(packages: Packages, reasons: Readonly<Record<string, string>>): string {
  const directs = directsOf(packages)
  const [tools, parts] = [
    directs.filter((each) => each.isForDevelopment),
    directs.filter((each) => !each.isForDevelopment),
  ]
  return [
    preface,
    `## What runs\n\n${tableOf(parts, reasons)}`,
    `## What builds, tests and measures it\n\n${tableOf(tools, reasons)}\n`,
  ].join('\n\n')
}
