/* blake2b_test.c - the hash against CPython's hashlib.blake2b (digest_size as stated), whose
 * message byte i is 7 i modulo 256. */
#include "base/blake2b.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    size_t n, n_sum;
    const char *hex;
} vectors[] = {
    {0, 1, "2e"},
    {0, 32, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {0, 64, "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce"},
    {1, 1, "a1"},
    {1, 32, "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314"},
    {1, 64, "2fa3f686df876995167e7c2e5d74c4c7b6e48f8068fe0e44208344d480f7904c36963e44115fe3eb2a3ac8694c28bcb4f5a0f3276f2e79487d8219057a506e4b"},
    {3, 1, "91"},
    {3, 32, "b316f3683ac87007461037a8ff6547de35618800044bb3a4e98b3560c92c3794"},
    {3, 64, "fed14d4674b95b8f01131200012dea8038f0527549cf3a4b7a9479e3d31cef171de96eca5ba7037ab0c4ab9a409c316da23f4587cc9d37af686edf712ddc73cc"},
    {127, 1, "74"},
    {127, 32, "4ff62e7c4c43fe101a078479c48836be4907d9d498dcc577ca89d694b2c11f9b"},
    {127, 64, "08b38d2c2a521e8a819cdca2d43b52df46768623ff2a89e8cbf5a0095e9873d8714e9f0f94bda6c0f43731a465769f5b4a978bc0efa8e0ccf8a37d901d3265b5"},
    {128, 1, "e7"},
    {128, 32, "14696d2a98d9f8a280da8b132b1045b345e1033759c6b02fcc4ee885c8ae7c37"},
    {128, 64, "0be555525cf1e0b9b74d2a743dd1ee3164b1de36feaa6084a1d054af06a5091346d6a2be5068fd5c612e0f8cbcefaacac2f5b309226bfc28817916fbc3ef0b23"},
    {129, 1, "58"},
    {129, 32, "3934215260b1039be9d9d2b073b059bcd50120c327a22af93eb4d98cf821c14c"},
    {129, 64, "31f95aa8eb1487ce670bc3c0c60ef98b83b7d7d88ff6b7d719fdc8838f301785591eed59d633b5f47b73aa828cf2dcdc775fc92c0de005ae9b7922b0f3251885"},
    {256, 1, "30"},
    {256, 32, "3d0cb2693dfbac42af5a6cc960953fea8714aa39c4bcd054ef61d6b5e98ade4a"},
    {256, 64, "f8517f3d1accbf944ef17fc76662f7d91e6bbff44a7c5a0ed63bc52d177810f5dee0881ae4541269f230ae91b0c4f8d8c9fa1fd094280e5ed38bc7da95427820"},
    {300, 1, "0f"},
    {300, 32, "91ccce0ba9e15867934e70e07d8d4af1270ec75748be56a3f48f5bc8b6c3967d"},
    {300, 64, "2ded56c1842538deaf0346ae8d4498b943b66c49b0041a98cdddd65d3a4ba027a8ecbf78fc780122ebde2e5d26f2eb2338dc5d0f307cb197cc95542eaf731822"},
    {1000, 1, "57"},
    {1000, 32, "6ac4bea923678eb024090384d6e767b5870f849057dc19b172d8d9f2df30bf8e"},
    {1000, 64, "b49dc7bf928d7dee879fafc64c1c93088810acc1f4a02264c4c09809c0f3dbc771e25e2dedce3dbbc0640da14af9fe42fb42b02c9fdff701b817f22192b7b2db"},
};
/* clang-format on */

static void check(size_t n, size_t n_sum, const char *hex, size_t step) {
    unsigned char message[1000], sum[BLAKE2B_MAX];
    char found[2 * BLAKE2B_MAX + 1] = "";
    for (size_t i = 0; i < n; i++) message[i] = (unsigned char)(i * 7);
    blake2b b;
    blake2b_begin(&b, n_sum);
    for (size_t at = 0; at < n; at += step)
        blake2b_add(&b, message + at, n - at < step ? n - at : step);
    blake2b_finish(&b, sum);
    for (size_t i = 0; i < n_sum; i++) snprintf(found + 2 * i, 3, "%02x", sum[i]);
    assert_string_equal(found, hex);
}

static void every_length_is_hashed_as_cpython_does(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        check(vectors[i].n, vectors[i].n_sum, vectors[i].hex, 1000);
}

static void pieces_give_the_hash_of_the_whole(void **state) {
    (void)state;
    static const size_t steps[] = {1, 7, 64, 127, 128, 129};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; j++)
            check(vectors[i].n, vectors[i].n_sum, vectors[i].hex, steps[j]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_length_is_hashed_as_cpython_does),
                                       cmocka_unit_test(pieces_give_the_hash_of_the_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
