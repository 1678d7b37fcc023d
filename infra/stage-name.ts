/** Keeps the longest names of functions and roles within 64 characters. */
export const maxStageLength = 20

/**
 * Returns the requirement that a name violates, or undefined. IAM policies match prefixes of resource names, so a stage
 * name with a hyphen could match the resources of another stage.
 */
export const stageNameError = (stage: string): string | undefined =>
  new RegExp(`^[a-z][a-z0-9]{0,${maxStageLength - 1}}$`).test(stage)
    ? undefined
    : `must be at most ${maxStageLength} lower-case letters and digits, starting with a letter`

/** A protected stage cannot be removed, and its data is retained. `sst.config.ts` repeats this rule. */
export const isProtectedStage = (stage: string, environment: Record<string, string | undefined>): boolean =>
  (environment['PLAT_PROTECTED'] || String(stage === 'production')) === 'true'

/** `eu-central-1` → `euc1`: names of roles, dashboards and budgets must be unique in an account. */
export const regionCode = (region: string): string =>
  region
    .split('-')
    .map((word, index) =>
      index === 0 ? word : word.replace(/^(north|south)?(.).*$/, (_, side = '', rest) => `${side[0] ?? ''}${rest}`),
    )
    .join('')
