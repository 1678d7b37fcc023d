import { isBarrel, isCode, report, type Source, sources } from './source.ts'

/** Rules of the house that the linter does not know. Each looks at one file and tells what is wrong, by line. */
type Rule = (file: Source) => (readonly [line: number, message: string])[]

const matches = ({ text }: Source, pattern: RegExp): { line: number; match: string }[] =>
  text.split('\n').flatMap((content, index) => {
    const [match] = pattern.exec(content) ?? []
    return match === undefined ? [] : [{ line: index + 1, match }]
  })

const noBarrels: Rule = (file) =>
  isCode(file) && isBarrel(file) ? [[1, 'only hands on what is not its own: import it from where it is made']] : []

const noPlacesOfOneMachine: Rule = (file) =>
  matches(file, /(?<![\w.)}\]*/-])\/(?:home|root|work|Users)\/\w+/).map(({ line, match }) => [
    line,
    `names a place on one machine: ${match}`,
  ])

const noRegistryOfOneMachine: Rule = (file) =>
  file.path.endsWith('package-lock.json')
    ? matches(file, /"resolved": "https?:\/\/(?!registry\.npmjs\.org\/).*/).map(({ line }) => [
        line,
        'names a registry that not everybody reaches',
      ])
    : []

const rules: readonly Rule[] = [noBarrels, noPlacesOfOneMachine, noRegistryOfOneMachine]

/** Every breach of a rule of the house. */
export const houseRuleViolations = (files: readonly Source[]): string[] =>
  files.flatMap((file) =>
    rules.flatMap((rule) => rule(file).map(([line, message]) => `${file.path}:${line} ${message}`)),
  )

if (import.meta.main) report(houseRuleViolations(sources()))
