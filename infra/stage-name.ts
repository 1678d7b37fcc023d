/** The production stage: protected from removal, and its data is retained. */
export const protectedStage = 'production'

/** Keeps the longest function name within Lambda's 64 characters. */
export const stageLengthMax = 20

/**
 * What is wrong with a stage name, or undefined. Hyphens separate the parts of resource names, and roles match
 * prefixes: a hyphen in a stage name could match another stage.
 */
export const stageNameError = (stage: string): string | undefined =>
  new RegExp(`^[a-z][a-z0-9]{0,${stageLengthMax - 1}}$`).test(stage)
    ? undefined
    : `must be at most ${stageLengthMax} lower-case letters and digits, starting with a letter`
