/** What the steps of the platform's own jobs are, in words. */
const words: Record<string, string> = {
  verify: 'Check the signature',
  deploy: 'Deploy',
  configure: 'Configure',
  start: 'Start',
  probe: 'Wait until it is healthy',
  publish: 'Publish its routes',
  stop: 'Stop',
  remove: 'Remove',
  preflight: 'Look whether it can be done',
  stage: 'Put the new version beside the old one',
  smoke: 'Try the new version',
  'shift-10': 'Let it answer 10 % of the requests',
  'shift-50': 'Let it answer 50 % of the requests',
  'shift-100': 'Let it answer all requests',
  commit: 'Keep it',
}

/** A step in words; one that is new here, by its name. */
export const stepText = (name: string): string => (Object.hasOwn(words, name) ? (words[name] ?? name) : name)
