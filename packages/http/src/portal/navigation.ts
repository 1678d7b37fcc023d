import { openedPage } from '@platform/contract/portal-paths'
import { type GatewayEvent } from '../event.ts'
import { encodedPath } from '../proxy/request.ts'
import { type HttpResponse, httpResponse } from '../response.ts'

const folder = '/modules/'

/** What decides about the answer at the address of a page of a module; other addresses answer everybody alike. */
export const varyHeadersFor = (path: string): string[] => (path.startsWith(folder) ? ['sec-fetch-dest'] : [])

/** Whether a browser opens a page of a module by itself, and not in a frame. */
export const isPageNavigation = ({ rawPath, headers, requestContext }: GatewayEvent): boolean =>
  rawPath.startsWith(folder) && requestContext.http.method === 'GET' && headers['sec-fetch-dest'] === 'document'

/**
 * Leads a browser to the portal, which shows the page in a frame. The portal's own page comes from one function alone: while
 * an update is under way another one may be of another version, and so name files that are not there.
 */
export const redirectToPortal = (event: GatewayEvent): HttpResponse =>
  httpResponse(302, null, {
    location: `/?${openedPage}=${encodeURIComponent(encodedPath(event))}`,
    vary: varyHeadersFor(event.rawPath).join(', '),
  })
