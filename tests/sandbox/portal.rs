//! The portal's shell: a sandbox has a band, and the beginning of titles. `tests/browser` has the screens.

use domain::mode::Mode;

use crate::sandbox::start;

#[tokio::test]
async fn the_shell_says_above_each_screen_and_in_each_title_that_it_is_a_sandbox() {
    for mode in Mode::ALL {
        let is_sandbox = mode == Mode::Test;
        let world = start(mode).await;
        let page = world.anonymous().get("/portal").await.expect(200).text;
        let script = page.split(" src=\"").nth(1).unwrap().split('"').next().unwrap();
        let script = world.anonymous().get(script).await.expect(200).text;
        assert_eq!(page.contains(">Sandbox: nothing here is real</aside>\n<header"), is_sandbox, "{page}");
        assert_eq!(page.contains("<title>Sandbox: Private Integrations</title>"), is_sandbox, "{page}");
        assert_eq!(page.contains("<title>Private Integrations</title>"), !is_sandbox, "{page}");
        assert_eq!(script.contains("TITLE_PREFIX = \"Sandbox: \";"), is_sandbox);
        assert_eq!(page.to_lowercase().contains("sandbox"), is_sandbox, "{page}");
    }
}
