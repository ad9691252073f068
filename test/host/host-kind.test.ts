/** Which of two ways is chosen. */
import { expect, it } from "vitest";
import { ErrInvalidConfig } from "../../src/core/errors.ts";
import { chooseHost } from "../../src/host/host-kind.ts";

it("follows the system, and the variable where there is one", () => {
  expect(chooseHost(undefined, "linux")).toBe("proc");
  expect(chooseHost("", "linux")).toBe("proc");
  expect(chooseHost(undefined, "darwin")).toBe("portable");
  expect(chooseHost("portable", "linux")).toBe("portable");
  expect(chooseHost("proc", "darwin")).toBe("proc");
  expect(() => chooseHost("Proc", "linux")).toThrow(ErrInvalidConfig);
});
