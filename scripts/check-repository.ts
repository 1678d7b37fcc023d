/**
 * Rules of the repository that no linter checks: top-level files, machine-specific paths and registries, re-exports of
 * whole files, retired words, commit subjects.
 */
import { execFileSync } from 'node:child_process'
import { report, root, type Source, sources } from './source.ts'

interface Rule {
  files: RegExp
  pattern: RegExp
  message: string
}

/** Words with an ordinary or standard counterpart (docs/glossary.md), rejected in names, comments and texts. */
const retiredWords = [
  'anew',
  'anybody',
  'bury',
  'everybody',
  'farewell',
  'impatient',
  'judgement',
  'meanwhile',
  'nobody',
  'obstacle',
  'rehearsal',
  'somebody',
  'stillborn',
  'tending',
  'turnstile',
  'unrun',
  'voucher',
  'whoever',
  'yardstick',
]

const retiredPattern = retiredWords
  .flatMap((word) => [`(?<![A-Za-z])${word}`, `(?<![A-Z])${word[0]!.toUpperCase()}${word.slice(1)}`])
  .join('|')

const rules: readonly Rule[] = [
  {
    files: /./,
    pattern: /(?<![\w.)}\]*/-])\/(?:home|root|work|Users)\/\w+/,
    message: 'a path of one machine',
  },
  {
    files: /(^|\/)package-lock\.json$/,
    pattern: /"resolved": "https?:\/\/(?!registry\.npmjs\.org\/)/,
    message: 'a registry other than registry.npmjs.org',
  },
  { files: /^packages\/.+\.ts$/, pattern: /^export \* from /, message: 're-exports a whole file' },
  {
    files: /^(?:(?:packages|functions|infra|scripts|test)\/.+\.(?:tsx?|mjs)|(?:docs\/.+|[A-Z]+)\.md)$/,
    pattern: new RegExp(`(?:${retiredPattern})(?![a-z])`),
    message: 'a retired word',
  },
]

const topLevelFiles =
  /^(?:\..+|(?:CHANGELOG|CONTRIBUTING|README|SECURITY)\.md|(?:knip|package|package-lock|tsconfig)\.json|redocly\.yaml|(?:sst|vitest)\.config\.ts)$/

const topLevelProblems = (files: readonly Source[]): string[] =>
  files
    .filter(({ path }) => !path.includes('/') && !topLevelFiles.test(path))
    .map(({ path }) => `${path} does not belong in the top-level folder`)

const maxSubjectLength = 72

/** Returns the lines of files that break a rule. */
export const repositoryProblems = (files: readonly Source[]): string[] =>
  files.flatMap(({ path, text }) => {
    const applicableRules = rules.filter(
      ({ files: names }) => names.test(path) && path !== 'scripts/check-repository.ts',
    )
    return text.split('\n').flatMap((line, index) =>
      applicableRules.flatMap(({ pattern, message }) => {
        const [match] = pattern.exec(line) ?? []
        return match === undefined ? [] : [`${path}:${index + 1} ${message}: ${match}`]
      }),
    )
  })

/**
 * Returns a problem if the subject of the latest commit that is not a merge is too long. Returns nothing without git.
 */
function subjectProblems(): string[] {
  try {
    const subject = execFileSync('git', ['log', '-1', '--no-merges', '--format=%s'], { cwd: root, encoding: 'utf8' })
    return subject.trim().length > maxSubjectLength
      ? [`commit subject is longer than ${maxSubjectLength}: ${subject}`]
      : []
  } catch {
    return []
  }
}

if (import.meta.main) {
  const files = sources()
  report([...topLevelProblems(files), ...repositoryProblems(files), ...subjectProblems()])
}
