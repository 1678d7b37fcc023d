/** Steps of platform jobs as text. */
const words: Record<string, string> = {
  verify: 'Check the signature',
  deploy: 'Deploy',
  configure: 'Configure',
  start: 'Start',
  probe: 'Health check',
  publish: 'Publish routes',
  stop: 'Stop',
  remove: 'Remove',
  preflight: 'Check prerequisites',
  stage: 'Deploy the new version',
  smoke: 'Smoke test',
  'shift-10': 'Shift 10 % of traffic',
  'shift-50': 'Shift 50 % of traffic',
  'shift-100': 'Shift all traffic',
  commit: 'Keep it',
}

/** Unknown steps show their name. */
export const stepText = (name: string): string => (Object.hasOwn(words, name) ? (words[name] ?? name) : name)
