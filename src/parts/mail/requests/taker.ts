/** Takes what runs ask for with files `<id>.mail` in their folders. Loads its code for the first one. */
import type { RequestTaker } from "../../../worker/request-taker.ts";

/** The ending of the files' names. */
export const REQUEST = ".mail";

export const mailRequests: RequestTaker = {
  ending: REQUEST,
  take: async (place, request) => {
    const { takeRequest } = await import("./take-request.ts");
    return await takeRequest(place, request);
  },
};
