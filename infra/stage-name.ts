/** The production stage: protected from removal, and its data is retained. */
export const protectedStage = 'production'

/** Keeps the longest function name within Lambda's 64 characters. */
export const stageLengthMax = 20

/**
 * Returns the requirement that a name violates, or undefined. Roles match prefixes of resource names, so a hyphen in a
 * stage name could match another stage.
 */
export const stageNameError = (stage: string): string | undefined =>
  new RegExp(`^[a-z][a-z0-9]{0,${stageLengthMax - 1}}$`).test(stage)
    ? undefined
    : `must be at most ${stageLengthMax} lower-case letters and digits, starting with a letter`
