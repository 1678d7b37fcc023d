/**
 * Paths that lead to modules. They stand beside the route table, not in it: what is behind them is a module's own
 * business. Gateways prefer every route of the table; of what is left, these paths go to the function named here.
 */
export const modulePaths = {
  function: 'gateway/modules',
  paths: ['/api/{proxy+}', '/modules/{proxy+}'],
  capabilities: ['table:read', 'table:write', 'secret:signing-keys', 'modules:invoke', 'queue:events'],
} as const

/**
 * What answers where no route and no passage leads: with a file of the portal, with its page where a browser navigates, and
 * with `route_not_found` to everybody else.
 */
export const fallback = { function: 'portal', capabilities: [] } as const
