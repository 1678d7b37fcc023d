/** Files that are changed, and the tests that have to notice: each mutant costs a run of those that come by it. */
export interface Group {
  mutate: readonly string[]
  tests: readonly string[]
  /** Whether these tests may share their settings and a table, which is faster. */
  isShared?: boolean
  /** Whether they need no store. */
  isPlain?: boolean
}

/** Code that decides one kind of thing. */
export interface Area {
  /** As people call it. */
  name: string
  groups: readonly Group[]
}

const authorization: Area = {
  name: 'authorization',
  groups: [
    {
      mutate: ['packages/http/src/authorize.ts'],
      tests: ['test/functions/{authorize,access}.test.ts'],
    },
    {
      mutate: ['packages/contract/src/permission.ts'],
      tests: ['test/contract/permission.test.ts'],
      isPlain: true,
    },
    {
      mutate: ['packages/core/src/accounts/{standing,api-token-caller}.ts'],
      tests: [
        'test/functions/authorize.test.ts',
        'test/core/accounts/{standing,api-token,api-token-caller,api-token-revocation}.test.ts',
        'test/core/identity-providers/external-user-rights.test.ts',
      ],
    },
    // Who may do what to whom, and grant what.
    {
      mutate: ['packages/core/src/accounts/delegation.ts'],
      tests: ['test/core/accounts/{rights,user,last-administrator,password}.test.ts'],
    },
  ],
}

const tokens: Area = {
  name: 'tokens',
  groups: [
    {
      mutate: ['packages/core/src/signing/access-token.ts'],
      tests: ['test/core/signing/{token,rotation}.test.ts'],
    },
    {
      mutate: ['packages/core/src/relay/{request-token,replay}.ts'],
      tests: ['test/core/clusters/{request-token,replay}.test.ts'],
      isShared: true,
    },
    {
      mutate: ['packages/core/src/session/{session,sign-in}.ts'],
      tests: [
        'test/core/accounts/{session,refresh,end,sign-in}.test.ts',
        'test/core/identity-providers/ldap/ldap.test.ts',
      ],
    },
    {
      mutate: ['packages/core/src/relay/{enrollment,enrollment-token}.ts'],
      tests: ['test/core/clusters/enrollment.test.ts', 'test/core/clusters/presence.test.ts'],
      isShared: true,
    },
    {
      mutate: ['packages/core/src/platform/setup.ts'],
      tests: ['test/core/platform/setup.test.ts'],
    },
    {
      mutate: ['packages/core/src/accounts/api-token.ts'],
      tests: ['test/core/accounts/{api-token,api-token-revocation}.test.ts'],
    },
  ],
}

const jobs: Area = {
  name: 'the states of jobs',
  groups: [
    {
      mutate: ['packages/core/src/jobs/{lease,end,job,dispatch}.ts'],
      tests: [
        'test/core/jobs/{job,end,dispatch,submit,claim,complete,cancel}.test.ts',
        'test/core/operations/operation.test.ts',
      ],
      isShared: true,
    },
    {
      mutate: ['packages/core/src/jobs/{overdue,dead-letter}.ts'],
      tests: ['test/core/jobs/{overdue,end,dead-letter,cancel}.test.ts'],
      isShared: true,
    },
    {
      mutate: ['packages/core/src/clusters/status.ts'],
      tests: ['test/core/clusters/status.test.ts'],
      isPlain: true,
    },
  ],
}

const updates: Area = {
  name: 'the states of updates',
  groups: [
    {
      mutate: ['packages/core/src/operations/operation.ts'],
      tests: ['test/core/operations/{operation,end,sweep}.test.ts'],
    },
    {
      mutate: ['packages/core/src/update/{update,lock,end,serving}.ts'],
      tests: ['test/core/updates/{update,end,lock}.test.ts'],
    },
    {
      mutate: ['packages/worker/src/updates/!(watch|budget|request-event).ts'],
      tests: ['test/worker/updates/{failure,go-back,plan,smoke,update,update-refused}.test.ts'],
    },
    // Who watches waits, and so do the tests of that.
    {
      mutate: ['packages/worker/src/updates/{watch,budget}.ts'],
      tests: ['test/worker/updates/{budget,update,unanswered}.test.ts'],
    },
    {
      mutate: ['packages/worker/src/updates/smoke-requests.ts'],
      tests: ['test/worker/updates/request-event.test.ts'],
    },
  ],
}

export const areas: readonly Area[] = [authorization, tokens, jobs, updates]

/** So little that `npm test` tries it, too. */
export const sample: Area = {
  name: 'the budget of failures',
  groups: [
    {
      mutate: ['packages/worker/src/updates/error-budget.ts:26-26'],
      tests: ['test/worker/updates/budget.test.ts'],
      isPlain: true,
    },
  ],
}
